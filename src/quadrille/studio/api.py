"""The interface for programs: /api/v1, JSON."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v1")
