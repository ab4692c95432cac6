"""What happens in a model when its attention is changed? Studies that run edited models."""
