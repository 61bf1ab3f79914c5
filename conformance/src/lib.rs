//! Checks implementations of reinforcement-learning losses against Plumbline's core.
