"""The specification: each rule of the semantics as text tables, held against the oracle and against the engine."""
