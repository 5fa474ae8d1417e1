"""The guards of a program: what Dynamo compiled, why it broke graphs, and why it compiled once more."""
