"""Registers for threads; users import them from `holdfast.cas`."""
