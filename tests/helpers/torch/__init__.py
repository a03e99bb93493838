"""What tests do with PyTorch. Files of such tests are named `test_*_torch.py`, and skip where it is not installed."""

REASON = "torch is not installed: pip install -e '.[test-torch]'"
