"""Simulated servers, one per engine, that speak its protocol to the byte. See `model` for the rules that each keeps."""
