"""What a judge of freshness is worth: a simulated year of facts that change at known dates."""
