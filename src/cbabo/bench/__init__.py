"""Proof: what the method is compared with, and how well it does."""

from __future__ import annotations
