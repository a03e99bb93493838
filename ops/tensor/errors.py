"""What a caller can do wrong with an operator. Every class is also the builtin that callers expect."""


class OpError(Exception):
    """Base of all errors that this folder raises."""


class ShapeError(OpError, ValueError):
    """Shapes that do not fit an operator, or that do not fit each other."""


class DtypeError(OpError, TypeError):
    """An element type that an operator does not take."""


class ArityError(OpError, TypeError):
    """Too few or too many inputs."""


class AttributeValueError(OpError, ValueError):
    """An attribute that is missing, unknown, or of a wrong value."""


class DataError(OpError, ValueError):
    """Data with which an operator cannot compute; known only when it runs."""


class CountError(DataError):
    """Data with a number of elements that the operator was not signed for."""


class GradientError(OpError, NotImplementedError):
    """A gradient that goes through an operator without a rule for it."""


class SchemaError(OpError, TypeError):
    """An operator whose schema breaks its own contract."""


class UnknownOperatorError(OpError, LookupError):
    """No operator of that name."""
