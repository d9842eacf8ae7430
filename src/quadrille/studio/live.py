"""What is told while it happens: the events of a job, the points of a study."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v1")
