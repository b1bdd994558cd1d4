"""GammaGMM, and the shortcuts that PyOD and scikit-learn users call."""
