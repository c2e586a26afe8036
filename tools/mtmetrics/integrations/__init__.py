"""The bridges to other libraries: modules of evaluate, trainers, generation, and a service behind
HTTP."""
