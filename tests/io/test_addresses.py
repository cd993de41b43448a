"""Names and interfaces to socket addresses, and back."""

import errno
import socket

import pytest

from zerohop.errors import EndpointError
from zerohop.io import addresses
from zerohop.io.addresses import (
    interface_address,
    local_address,
    numeric_address,
    printable,
    resolve,
)

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6
LO = socket.if_nametoindex("lo")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", (IPV4, ("127.0.0.1", 5))),
        ("0.0.0.0", (IPV4, ("0.0.0.0", 5))),
        ("::1", (IPV6, ("::1", 5, 0, 0))),
        ("::", (IPV6, ("::", 5, 0, 0))),
        ("fe80::1%lo", (IPV6, ("fe80::1", 5, 0, LO))),
        ("fe80::1%7", (IPV6, ("fe80::1", 5, 0, 7))),
        ("fe80::1%nowhere", None),
        ("127.0.0.1%lo", None),
        ("127.1", None),  # the system's shorthand is a name to us
        ("1.2.3.4.5", None),
        ("localhost", None),
        ("", None),
        ("*", None),
        ("a\0b", None),
        ("ü", None),
    ],
)
def test_literals_are_addresses_and_everything_else_is_a_name(host, address):
    assert numeric_address(host, 5) == address


@pytest.mark.parametrize(
    ("host", "ipv6", "address"),
    [
        ("*", False, (IPV4, ("0.0.0.0", 5))),
        ("*", True, (IPV6, ("::", 5))),
        ("127.0.0.1", False, (IPV4, ("127.0.0.1", 5))),
        ("127.0.0.1", True, (IPV4, ("127.0.0.1", 5))),
        ("::1", True, (IPV6, ("::1", 5, 0, 0))),
        ("lo", False, (IPV4, ("127.0.0.1", 5))),
        ("lo", True, (IPV6, ("::1", 5, 0, 0))),
        ("localhost", False, (IPV4, ("127.0.0.1", 5))),
    ],
)
def test_where_one_can_listen(host, ipv6, address):
    assert local_address(host, 5, ipv6=ipv6, endpoint="tcp://x:5") == address


def test_this_machine_may_be_named(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "here.example")
    monkeypatch.setattr(addresses, "resolve", lambda *_, **__: [(IPV4, ("127.0.0.2", 5))])
    found = local_address("here.example", 5, ipv6=False, endpoint="tcp://here.example:5")
    assert found == (IPV4, ("127.0.0.2", 5))


@pytest.mark.parametrize("host", ["eth77", "elsewhere.example", "127.1"])
def test_another_name_is_no_place_to_listen_and_nobody_is_asked_for_it(monkeypatch, host):
    """A question to a name server may take long, and bind() would keep the loop."""

    def ask(*_, **__):
        raise AssertionError("a name server was asked")

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    with pytest.raises(EndpointError) as error:
        local_address(host, 5, ipv6=False, endpoint=f"tcp://{host}:5")
    assert error.value.errno == errno.ENODEV
    assert f"tcp://{host}:5" in str(error.value)
    assert "lo" in error.value.__notes__[0]


def test_an_ipv6_literal_needs_the_option():
    with pytest.raises(EndpointError) as error:
        local_address("::1", 5, ipv6=False, endpoint="tcp://[::1]:5")
    assert "set the IPV6 option" in error.value.__notes__[0]


def test_a_name_of_this_machine_that_nobody_knows(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(EndpointError) as error:
        local_address("localhost", 5, ipv6=False, endpoint="tcp://localhost:5")
    assert error.value.errno == errno.ENODEV


def test_an_interface_without_an_ipv6_address_is_used_with_its_ipv4_address(monkeypatch, tmp_path):
    (tmp_path / "if_inet6").write_text("")
    monkeypatch.setattr(addresses, "_IF_INET6", str(tmp_path / "if_inet6"))
    assert local_address("lo", 5, ipv6=True, endpoint="x") == (IPV4, ("127.0.0.1", 5))


def test_the_table_of_ipv6_interfaces(monkeypatch, tmp_path):
    table = tmp_path / "if_inet6"
    table.write_text(
        "fe80000000000000021122fffe334455 02 40 20 80     eth0\n"
        "00000000000000000000000000000001 01 80 10 80       lo\n"
        "too short\n"
        "20010db8000000000000000000000007 03 40 00 80     eth1\n"
    )
    monkeypatch.setattr(addresses, "_IF_INET6", str(table))
    assert interface_address("lo", ipv6=True) == "::1"
    assert interface_address("eth0", ipv6=True) == "fe80::211:22ff:fe33:4455%eth0"
    assert interface_address("eth1", ipv6=True) == "2001:db8::7"
    assert interface_address("eth2", ipv6=True) is None
    monkeypatch.setattr(addresses, "_IF_INET6", str(tmp_path / "none"))
    assert interface_address("lo", ipv6=True) == "127.0.0.1"


def test_interfaces_go_by_name_on_linux_only(monkeypatch):
    assert interface_address("lo", ipv6=False) == "127.0.0.1"
    assert interface_address("nowhere", ipv6=False) is None
    monkeypatch.setattr(addresses.sys, "platform", "darwin")
    assert interface_address("lo", ipv6=False) is None


def test_every_address_of_a_name_is_found_in_the_systems_order(monkeypatch):
    asked = []

    def answer(host, port, family, kind):
        asked.append((host, port, family, kind))
        return [
            (IPV6, kind, 6, "", ("::1", port, 0, 0)),
            (IPV4, kind, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert resolve("name", 5, ipv6=True) == [(IPV6, ("::1", 5, 0, 0)), (IPV4, ("127.0.0.1", 5))]
    resolve("name", 5, ipv6=False)
    assert [family for _, _, family, _ in asked] == [socket.AF_UNSPEC, IPV4]
    assert {kind for _, _, _, kind in asked} == {socket.SOCK_STREAM}


@pytest.mark.parametrize(
    ("name", "scheme", "shown"),
    [
        (("127.0.0.1", 5), "tcp", "tcp://127.0.0.1:5"),
        (("::1", 5, 0, 0), "tcp", "tcp://[::1]:5"),
        ("/run/x", "ipc", "ipc:///run/x"),
        (b"\0abstract", "ipc", "ipc://@abstract"),
        (b"\0\xff", "ipc", "ipc://@\\xff"),
        ("", "ipc", ""),
    ],
)
def test_names_of_the_system_are_shown_as_endpoints(name, scheme, shown):
    assert printable(name, scheme=scheme) == shown
