"""What passes through attention while a model runs?"""
