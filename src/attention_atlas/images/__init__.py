"""What is in a picture? Pictures as people and models see them; no torch."""
