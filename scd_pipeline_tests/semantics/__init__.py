"""The specification: each rule of the semantics as text tables, compared with the oracle and with the engine."""
