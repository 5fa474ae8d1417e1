"""The judgement of a run's launches, and the steps of generated code that made them."""
