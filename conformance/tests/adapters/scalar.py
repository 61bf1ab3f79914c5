"""Scalars that remember how they were computed, so that a planted mistake reaches the gradient as autograd would carry it."""

import math


class Scalar:
    """A number with the partial derivatives by what it was made from."""

    def __init__(self, value, parents=()):
        self.value = value
        self.parents = parents
        self.gradient = 0.0

    def __add__(self, other):
        other = lift(other)
        return Scalar(self.value + other.value, ((self, 1.0), (other, 1.0)))

    __radd__ = __add__

    def __mul__(self, other):
        other = lift(other)
        return Scalar(self.value * other.value, ((self, other.value), (other, self.value)))

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -lift(other)

    def __rsub__(self, other):
        return lift(other) + -self

    def __truediv__(self, number):
        return self * (1.0 / number)

    def exp(self):
        value = math.exp(self.value)
        return Scalar(value, ((self, value),))

    def detach(self):
        return Scalar(self.value)

    def clamp(self, low, high):
        inside = low <= self.value <= high
        return Scalar(min(max(self.value, low), high), ((self, 1.0 if inside else 0.0),))

    def backward(self):
        """Gradients of everything that this number was made from."""
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for parent, _ in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.gradient = 1.0
        for node in reversed(order):
            for parent, partial in node.parents:
                parent.gradient += partial * node.gradient


def lift(value):
    return value if isinstance(value, Scalar) else Scalar(value)


def minimum(first, second):
    return first if first.value <= second.value else second


def maximum(first, second):
    return first if first.value >= second.value else second
