"""Which broker is chosen, and what is said when the choice makes no sense. No broker is started here."""

import re

import pytest

from helpers.engines import embedded, kafka
from helpers.engines.broker_settings import as_environment, as_properties, new_cluster_id
from helpers.engines.jars import version_of
from helpers.engines.kafka import start_kafka
from helpers.errors import LabError

pytestmark = pytest.mark.usefixtures("no_lab_variables")


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    """Whatever gets as far as starting one has failed the test."""

    def refuse(*_):
        pytest.fail("a broker was about to be started")

    monkeypatch.setattr(embedded.EmbeddedBroker, "_try", refuse)
    monkeypatch.setattr(embedded, "broker_jars", lambda: [])  # nor are jars fetched
    monkeypatch.setattr("helpers.engines.container.ContainerBroker.start", refuse)


def test_an_unknown_backend_is_named_and_the_known_ones_listed(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", "nonsense")
    with pytest.raises(LabError, match="LAB_KAFKA is 'nonsense': use auto, testcontainers, embedded or external"):
        start_kafka(say=pytest.fail)


def test_an_unknown_backend_in_a_call_is_named_as_well():
    with pytest.raises(LabError, match=r"start_kafka\('nonsense'\): use auto, testcontainers, embedded or external"):
        start_kafka("nonsense", say=pytest.fail)


def test_external_without_an_address_says_which_variable_to_set(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", "external")
    with pytest.raises(LabError, match=r"LAB_KAFKA=external needs LAB_KAFKA_BOOTSTRAP, for example .*localhost:9092"):
        start_kafka(say=pytest.fail)


def test_a_blank_address_counts_as_none(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", " External ")
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", "  ")
    with pytest.raises(LabError, match="needs LAB_KAFKA_BOOTSTRAP"):
        start_kafka(say=pytest.fail)


@pytest.mark.parametrize("port", ["nonsense", "80", "0", "-1", "65536", "90.92"])
def test_a_port_that_makes_no_sense_is_refused(monkeypatch, port):
    monkeypatch.setenv("LAB_KAFKA_PORT", port)
    with pytest.raises(LabError, match=f"LAB_KAFKA_PORT is '{port}': use a port from 1024 to 65535, or unset it"):
        start_kafka("embedded", say=pytest.fail)


def test_a_port_that_is_taken_is_said_to_be(monkeypatch, taken_port):
    monkeypatch.setenv("LAB_KAFKA_PORT", str(taken_port))
    with pytest.raises(LabError, match=rf"Port {taken_port} \(LAB_KAFKA_PORT\) is taken.*unset LAB_KAFKA_PORT"):
        start_kafka("embedded", say=pytest.fail)


def test_a_free_port_is_accepted(monkeypatch, closed_port):
    monkeypatch.setenv("LAB_KAFKA_PORT", str(closed_port))
    assert embedded._wanted_port() == closed_port


@pytest.mark.parametrize("address", ["localhost", "http://localhost:9092", "one:9092 two:9092"])
def test_an_address_that_makes_no_sense_is_refused_before_anybody_is_called(monkeypatch, address):
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", address)
    with pytest.raises(LabError, match=f"LAB_KAFKA_BOOTSTRAP is '{address}': use host:port"):
        start_kafka(say=pytest.fail)


def test_the_container_runs_the_kafka_that_the_jars_are(monkeypatch):
    from helpers.engines.container import ContainerBroker

    assert ContainerBroker().image == f"apache/kafka:{version_of('kafka_2.13')}"
    monkeypatch.setenv("LAB_KAFKA_IMAGE", "local/kafka:mine")
    assert ContainerBroker().image == "local/kafka:mine"


def test_both_brokers_are_set_up_alike():
    properties = dict(line.split("=", 1) for line in as_properties(log_dirs="here").splitlines())
    environment = as_environment(log_dirs="here")
    assert {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in properties.items()} == environment
    assert properties["log.dirs"] == environment["KAFKA_LOG_DIRS"] == "here"
    assert properties["auto.create.topics.enable"] == environment["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_every_broker_has_a_cluster_id_of_its_own_that_kafka_takes():
    names = {new_cluster_id() for _ in range(1000)}
    assert len(names) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", name) for name in names)


def test_docker_forced_but_absent_names_the_way_out(monkeypatch, closed_port):
    monkeypatch.setenv("LAB_KAFKA", "testcontainers")
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed_port}")
    with pytest.raises(LabError, match=r"no Docker engine answers \(.+\)\. Start Docker, or set LAB_KAFKA=embedded"):
        start_kafka(say=pytest.fail)


def choice(monkeypatch) -> list:
    """What is started if nothing is said, with every way to start replaced by its name."""
    chosen = []

    def stand_in(name: str):
        def chosen_one(why=""):
            chosen.append((name, why))
            raise LabError("enough")

        return chosen_one

    monkeypatch.setattr(kafka, "_embedded", stand_in("_embedded"))
    for name in ("testcontainers", "embedded", "external"):
        monkeypatch.setitem(kafka._START, name, stand_in(f"_{name}"))
    with pytest.raises(LabError, match="enough"):
        start_kafka(say=pytest.fail)
    return chosen


def test_without_docker_auto_goes_for_the_embedded_broker_and_says_why(monkeypatch, closed_port):
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed_port}")
    assert choice(monkeypatch) == [("_embedded", "no Docker engine answers")]


def test_with_an_address_auto_asks_no_docker(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", "kafka.example:9092")
    monkeypatch.setattr("helpers.engines.container.engine_fault", lambda: pytest.fail("Docker was asked"))
    assert choice(monkeypatch) == [("_external", "")]


def test_ports_are_different_and_free(monkeypatch, taken_port):
    monkeypatch.setattr(embedded, "PORTS", range(taken_port - 3, taken_port + 4))
    for _ in range(20):
        ports = embedded._free_ports(2)
        assert len(set(ports)) == 2 and taken_port not in ports


def test_no_free_port_gets_a_sentence(monkeypatch, taken_port):
    monkeypatch.setattr(embedded, "PORTS", range(taken_port, taken_port + 1))
    with pytest.raises(LabError, match=f"All ports from {taken_port} to {taken_port} are taken"):
        embedded._free_ports(1)
