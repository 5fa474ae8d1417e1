"""What a judgement of a run says, launch by launch, and which launches made which steps of a graph's code."""
