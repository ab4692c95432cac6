"""Which token is each query and key, and where in a picture is it?"""
