"""Scoring candidate releases."""
