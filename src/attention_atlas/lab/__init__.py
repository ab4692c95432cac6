"""What happens when attention is changed, over worlds, heads and inputs?"""
