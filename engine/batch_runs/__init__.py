"""Many inputs through one network: workers that share its weights and follow its plan."""
