"""What can be changed in a forward pass, and is the change the one that was asked for?"""
