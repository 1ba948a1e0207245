"""Fits the verifier for Chinese: its words, its corruptions and rewordings, its pairs."""
