"""Settings of a scan, in YAML and in Python: what they do, and what is said of each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import DETECTORS
from rldk.judge.config import ScanConfig
from rldk.testing.streams import faulty


def built(given: dict[str, Any]) -> dict[str, Any]:
    return {detector.key: detector for detector in ScanConfig.from_dict(given).build()}


def raised(given: dict[str, Any], events: list[Event]) -> list[tuple[str, str, int]]:
    judge = ScanConfig.from_dict(given).judge()
    for event in events:
        judge.take(event)
    return [(anomaly.type, anomaly.severity, anomaly.index) for anomaly in judge.engine.anomalies]


def rows(values: list[float], name: str = "clip_frac") -> list[Event]:
    return [Event(step, {name: value, "reward_mean": 0.5 + 0.1 * (step % 3)}) for step, value in enumerate(values)]


CLIPPED = rows([0.1] * 20 + [0.7] * 40)
YAML = """
detectors:
  entropy_explosion: {factor: 6, persist: 5}   # its own settings
  throughput_drop: false
  length_runaway: {severity: warning}
  plateau: {enabled: false}
limits:
  kl_mean: {max: 0.2, severity: critical}
  my/metric: {min: -1}
kl_target: 6.0
kl_target_tolerance: 1.5
"""


def test_yaml_and_dict_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.yaml"
    path.write_text(YAML)
    given = {
        "detectors": {
            "entropy_explosion": {"factor": 6, "persist": 5},
            "throughput_drop": False,
            "length_runaway": {"severity": "warning"},
            "plateau": {"enabled": False},
        },
        "limits": {"kl_mean": {"max": 0.2, "severity": "critical"}, "my/metric": {"min": -1}},
        "kl_target": 6.0,
        "kl_target_tolerance": 1.5,
    }
    assert ScanConfig.from_yaml(path) == ScanConfig.from_yaml(str(path)) == ScanConfig.from_dict(given)
    found = {detector.key: detector for detector in ScanConfig.from_yaml(path).build()}
    assert (found["entropy_explosion"].factor, found["entropy_explosion"].wait) == (6.0, 5)
    assert not {"throughput_drop", "plateau"} & set(found)
    assert found["length_runaway"].cap == "warning"
    limit = found["user_limit_exceeded:kl_mean"]
    assert (limit.highest, limit.cap) == (0.2, "critical")
    assert found["user_limit_exceeded:my/metric"].lowest == -1.0
    assert ScanConfig.from_yaml(path).judge().engine.context["kl_target"] == 6.0


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "detectors:\nlimits:\n"])
def test_a_file_that_sets_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "thresholds.yaml"
    path.write_text(text)
    assert ScanConfig.from_yaml(path) == ScanConfig()
    assert [type(detector) for detector in ScanConfig.from_yaml(path).build()] == list(DETECTORS)


def of_clip(**settings: Any) -> dict[str, Any]:
    return {"detectors": {"clip_saturation": settings}}


def of_kl(**limit: Any) -> dict[str, Any]:
    return {"limits": {"kl_mean": limit}}


WHOLE = "to be a whole number of at least 1, got"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "Expected a mapping with detectors, limits, kl_target, kl_target_tolerance, sensitivity, got list."),
        ("kl", "Expected a mapping with detectors, limits, kl_target, kl_target_tolerance, sensitivity, got str."),
        ({"detector": {}}, "Unknown key 'detector'. Did you mean detectors?"),
        ({"zzz": 1}, "Unknown key 'zzz'. Known are detectors, limits, kl_target, kl_target_tolerance and sensitivity."),
        ({7: 1}, "Unknown key 7. Known are"),
        ({"detectors": []}, "Expected `detectors` to be a mapping, got list."),
        ({"limits": "kl"}, "Expected `limits` to be a mapping, got str."),
        ({"detectors": {"entropy_colapse": {}}}, "There is no detector 'entropy_colapse'. Did you mean entropy_collapse"),
        ({"detectors": {"zzz": {}}}, "There is no detector 'zzz'. Known are kl_explosion"),
        ({"detectors": {"plateau": 3}}, "Expected `detectors.plateau` to be a mapping, got 3."),
        ({"detectors": {"plateau": None}}, "Expected `detectors.plateau` to be a mapping, got None."),
        (of_clip(shore=3), "clip_saturation has no setting 'shore'; it has share, persist, clear, severity, sensitivity."),
        ({"detectors": {"plateau": {"rows": 3}}}, "Expected `plateau.rows` to be a number of at least 10, got 3."),
        (of_clip(share=1.5), "Expected `clip_saturation.share` to be a number of at least 0 and of at most 1, got 1.5."),
        (of_clip(share="half"), "Expected `clip_saturation.share` to be a number, got 'half'."),
        (of_clip(share=True), "Expected `clip_saturation.share` to be a number, got True."),
        (of_clip(share=float("nan")), "Expected `clip_saturation.share` to be a number of"),
        (of_clip(persist=0), f"Expected `clip_saturation.persist` {WHOLE} 0."),
        (of_clip(persist=1.5), f"Expected `clip_saturation.persist` {WHOLE} 1.5."),
        (of_clip(clear=float("inf")), f"Expected `clip_saturation.clear` {WHOLE} inf."),
        (of_clip(severity="fatal"), "Expected `clip_saturation.severity` to be one of ['warning', 'critical'], got 'fatal'."),
        (of_clip(severity=["warning"]), "Expected `clip_saturation.severity` to be one of"),
        (of_clip(enabled="no"), "Expected `clip_saturation.enabled` to be true or false, got 'no'."),
        ({"limits": {"kl_mean": 0.2}}, "Expected `limits.kl_mean` to be a mapping, got 0.2."),
        ({"limits": {"kl_meen": {"max": 0.2}}}, "Cannot limit 'kl_meen': no metric has that name. Did you mean kl_mean"),
        ({"limits": {"kl_mean": {}}}, "Expected the limit of 'kl_mean' to have `max` or `min`, got []."),
        (of_kl(mox=1), "Expected the limit of 'kl_mean' to have `max` or `min`, got ['mox']."),
        (of_kl(max="x"), "Expected `limits.kl_mean.max` to be a number, got 'x'."),
        (of_kl(max=None), "Expected `limits.kl_mean.max` to be a number, got None."),
        (of_kl(max=float("nan")), "Expected `limits.kl_mean.max` to be a number, got nan."),
        (of_kl(max=1, min=2), "Expected the limit of 'kl_mean' to have `min` below `max`, got 2 and 1."),
        (of_kl(max=1, severity="fatal"), "to be one of ['warning', 'critical'], got 'fatal'."),
        ({"kl_target": "six"}, "Expected `kl_target` to be a number, got 'six'."),
        ({"kl_target": float("nan")}, "Expected `kl_target` to be a number, got nan."),
        ({"kl_target": -1}, "Expected `kl_target` to be a finite number of at least 0, got -1."),
        ({"kl_target": float("inf")}, "Expected `kl_target` to be a finite number of at least 0, got inf."),
        ({"kl_target_tolerance": -0.1}, "Expected `kl_target_tolerance` to be a finite number of at least 0, got -0.1."),
        ({"kl_target": True}, "Expected `kl_target` to be a number, got True."),
        ({"kl_target_tolerance": []}, "Expected `kl_target_tolerance` to be a number, got []."),
    ],
    ids=str,
)  # fmt: skip
def test_every_mistake_is_said(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        ScanConfig.from_dict(given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("detectors: {plateau: {rows: 3}}", "thresholds.yaml: Expected `plateau.rows` to be"),
        ("detectors: [", "thresholds.yaml is not YAML: "),
        ("a: b: c", "thresholds.yaml is not YAML: "),
        ("!!python/object/apply:os.system [true]", "thresholds.yaml is not YAML: "),
        ("- a\n- b\n", "thresholds.yaml: Expected a mapping with"),
        (b"\xff\xfe\x00", "thresholds.yaml cannot be read: "),
    ],
)
def test_a_mistake_in_a_file_names_the_file(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "thresholds.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as error:
        ScanConfig.from_yaml(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere.yaml cannot be read: No such file or directory\."):
        ScanConfig.from_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        ScanConfig.from_yaml(tmp_path)


def test_mistakes_are_said_when_it_is_made_and_not_in_the_middle_of_a_run() -> None:
    with pytest.raises(UsageError, match="There is no detector"):
        ScanConfig(detectors={"zzz": {}})


def test_without_settings_it_fires() -> None:
    assert raised({}, CLIPPED) == [("clip_saturation", "warning", 29)]


@pytest.mark.parametrize("off", [False, {"enabled": False}])
def test_a_detector_that_is_switched_off_is_silent(off: Any) -> None:
    assert raised({"detectors": {"clip_saturation": off}}, CLIPPED) == []
    assert "clip_saturation" not in built({"detectors": {"clip_saturation": off}})


def test_switched_on_is_as_it_is() -> None:
    assert raised({"detectors": {"clip_saturation": True}}, CLIPPED) == [("clip_saturation", "warning", 29)]


def test_the_severity_can_be_overruled_either_way() -> None:
    assert raised({"detectors": {"clip_saturation": {"severity": "critical"}}}, CLIPPED) == [("clip_saturation", "critical", 29)]
    events = faulty("entropy_explosion", seed=1, steps=200, onset=60)
    found = raised({"detectors": {"entropy_explosion": {"severity": "warning"}}}, events)
    assert {severity for kind, severity, _ in found if kind == "entropy_explosion"} == {"warning"}
    assert ("entropy_explosion", "critical") in {row[:2] for row in raised({}, events)}


def test_how_long_it_must_hold_can_be_set() -> None:
    assert raised({"detectors": {"clip_saturation": {"persist": 1}}}, CLIPPED) == [("clip_saturation", "warning", 22)]
    assert raised({"detectors": {"clip_saturation": {"persist": 30}}}, CLIPPED) == [("clip_saturation", "warning", 51)]
    assert raised({"detectors": {"clip_saturation": {"persist": 60}}}, CLIPPED) == []


def test_a_threshold_can_be_set() -> None:
    assert raised({"detectors": {"clip_saturation": {"share": 0.8}}}, CLIPPED) == []


def test_a_limit_is_hard() -> None:
    events = rows([0.1] * 5 + [0.3] + [0.1] * 5, "kl_mean")
    assert raised({"limits": {"kl_mean": {"max": 0.2}}}, events) == [("user_limit_exceeded", "warning", 5)]
    assert raised({"limits": {"kl_mean": {"max": 0.2, "severity": "critical"}}}, events) == [
        ("user_limit_exceeded", "critical", 5)
    ]
    assert raised({"limits": {"kl_mean": {"min": 0.2}}}, events) == [
        ("user_limit_exceeded", "warning", 0),
        ("user_limit_exceeded", "warning", 6),
    ]
    assert raised({"limits": {"kl_mean": {"max": 0.3, "min": 0.1}}}, events) == []


def test_a_limit_on_a_key_of_ones_own() -> None:
    assert raised({"limits": {"my/metric": {"max": 1}}}, rows([0.0, 2.0], "my/metric")) == [("user_limit_exceeded", "warning", 1)]
    assert isinstance(built({"limits": {"my/metric": {"max": 1}}})["user_limit_exceeded:my/metric"], UserLimit)


@pytest.mark.parametrize(
    ("name", "metric"),
    [("kl", "kl_mean"), ("entropy", "entropy_mean"), ("learning_rate", "lr"), ("grad_norm_policy", "policy_grad_norm")],
)
def test_a_limit_by_a_name_that_logs_have(name: str, metric: str) -> None:
    found = raised({"limits": {name: {"max": 1e-3}}}, rows([5e-4, 5e-4, 1.5e-3], metric))
    assert found == [("user_limit_exceeded", "warning", 2)]


def test_a_limit_on_held_out_data() -> None:
    found = raised({"limits": {"eval_reward_mean": {"min": 0.2}}}, rows([0.5, 0.1], "eval_reward_mean"))
    assert found == [("user_limit_exceeded", "warning", 1)]


def test_each_engine_is_its_own() -> None:
    config = ScanConfig()
    first, second = config.judge().engine, config.judge().engine
    assert first.detectors[0] is not second.detectors[0]
