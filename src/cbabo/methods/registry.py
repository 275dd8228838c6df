"""The methods by their settings."""

from __future__ import annotations

from cbabo.methods.default import DefaultMethod
from cbabo.methods.method import Method
from cbabo.methods.paper import PaperMethod
from cbabo.methods.settings import MethodSettings, PaperSettings


def method_for(settings: MethodSettings) -> Method:
    """Return the method that these settings belong to."""
    return PaperMethod(settings) if isinstance(settings, PaperSettings) else DefaultMethod(settings)
