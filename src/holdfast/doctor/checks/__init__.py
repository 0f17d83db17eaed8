"""What is looked at: one module for this process, and one per engine. Rules: `holdfast.doctor`."""
