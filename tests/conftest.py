from hypothesis import settings

# A first call may import scipy's solvers, and a busy machine is slow: time is not what is tested.
settings.register_profile("margrave", deadline=None, parent=settings())
settings.load_profile("margrave")
