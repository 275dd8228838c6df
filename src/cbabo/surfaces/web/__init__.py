"""The web server: the explorer's page and the same verbs over HTTP."""

from __future__ import annotations
