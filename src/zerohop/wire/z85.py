"""Z85: binary data as printable text, 4 octets to 5 characters (RFC 32).

    text   = one group of 5 characters for 4 octets
    group  = the octets as one number in network order, written in base 85, highest digit first
    digits = 0-9 a-z A-Z . - : + = ^ ! / * ? & < > ( ) [ ] { } @ % $ #

CURVE keys are given in this form: 40 characters for 32 octets. No padding is defined, so lengths
have to fit.
"""

__all__ = ["decode", "encode"]

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_PLACES = (85**4, 85**3, 85**2, 85, 1)


def encode(rawbytes: bytes | bytearray | memoryview) -> bytes:
    """Return the Z85 text of ``rawbytes``.

    Raises:
        ValueError: the length is not a multiple of 4.
        TypeError: not bytes.
    """
    if len(rawbytes) % 4:
        raise ValueError(f"length must be multiple of 4, not {len(rawbytes)}")
    octets = memoryview(rawbytes)
    out = bytearray()
    for start in range(0, len(octets), 4):
        number = int.from_bytes(octets[start : start + 4], "big")
        out += bytes(_DIGITS[number // place % 85] for place in _PLACES)
    return bytes(out)


def decode(z85bytes: bytes | bytearray | memoryview | str) -> bytes:
    """Return the octets of a Z85 text.

    Raises:
        ValueError: the length is not a multiple of 5, a character is not a digit of Z85, or a
            group stands for more than 4 octets hold. The text itself is not repeated: it may be
            a secret key.
        TypeError: neither bytes nor str.
    """
    if isinstance(z85bytes, str):
        try:
            z85bytes = z85bytes.encode("ascii")
        except UnicodeEncodeError:
            raise ValueError("string argument should contain only ASCII characters") from None
    if len(z85bytes) % 5:
        raise ValueError(f"Z85 length must be multiple of 5, not {len(z85bytes)}")
    text = memoryview(z85bytes)
    out = bytearray()
    for start in range(0, len(text), 5):
        try:
            number = sum(
                _VALUES[digit] * place
                for digit, place in zip(text[start : start + 5], _PLACES, strict=True)
            )
            out += number.to_bytes(4, "big")
        except KeyError:
            raise ValueError(f"not a Z85 character in the group at {start}") from None
        except OverflowError:
            raise ValueError(f"the group at {start} exceeds 4 octets") from None
    return bytes(out)
