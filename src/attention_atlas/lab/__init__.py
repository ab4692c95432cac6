"""What happens when attention is changed, and how much does each head matter?"""
