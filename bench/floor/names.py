"""The constants that the cases ask for, with libzmq's numbers."""

REQ = 3
REP = 4
PULL = 7
PUSH = 8
LAST_ENDPOINT = 32
