//! The Helm chart: rendered by Helm's own library, checked against the schemas of Kubernetes, and compared with the manifest.

use integration_tests::require;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn checkout(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Runs `packaging/helm/check-chart`; `None` where Helm's library is missing.
fn check_chart(arguments: &[&str]) -> Option<Output> {
    let python = checkout(".venv/bin/python");
    let packages = checkout(".helm");
    let there = python.exists() && packages.join("helm_python").exists();
    require(there.then_some(()), "no helm-python-sdk; run `.ci/run tools`")?;
    let mut command = Command::new(python);
    command.arg(checkout("packaging/helm/check-chart")).args(arguments).env("PYTHONPATH", packages);
    Some(command.output().unwrap())
}

/// The objects of the chart, by kind.
fn rendered(arguments: &[&str]) -> Option<Vec<Value>> {
    let output = check_chart(arguments)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lint = checked["lint"].as_str().unwrap();
    assert!(lint.contains("'errors': []"), "{lint}");
    let mut objects = checked["objects"].as_array().unwrap().clone();
    objects.sort_by_key(|object| object["kind"].to_string());
    Some(objects)
}

/// Leaves out the lines of a text that are comments or empty.
fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn without_values_the_chart_is_the_manifest() {
    let Some(mut chart) = rendered(&[]) else { return };
    let manifest = fs::read_to_string(checkout("packaging/kubernetes/coretools.yaml")).unwrap();
    let Some(mut manifest) = crate::packaging::yaml(&manifest) else { return };
    manifest.sort_by_key(|object| object["kind"].to_string());
    for objects in [&mut chart, &mut manifest] {
        for object in objects.iter_mut().filter(|object| object["kind"] == "ConfigMap") {
            let config = without_comments(object["data"]["coretools.toml"].as_str().unwrap());
            // A list of TOML has blanks or none.
            object["data"]["coretools.toml"] = Value::from(config.replace(", ", ","));
        }
    }
    assert_eq!(chart.len(), manifest.len());
    for (one, other) in chart.iter().zip(&manifest) {
        assert_eq!(one, other, "{}", one["kind"]);
    }
}

#[test]
fn values_reach_the_objects_and_wrong_ones_are_refused() {
    let set = "replicas=2,host=agents.example,gateway.addresses={10.1.0.0/16,10.2.0.0/16},drainSeconds=60,\
               projects.existingClaim=shared,restartOnConfigChange=true,secrets.tokens=my-tokens";
    let Some(objects) = rendered(&["--name", "tools", "--set", set]) else { return };
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
    assert!(of_kind("PersistentVolumeClaim").is_none(), "the claim is there already");
    let deployment = of_kind("Deployment").unwrap();
    assert_eq!(
        (&deployment["metadata"]["name"], &deployment["spec"]["replicas"]),
        (&"tools".into(), &2.into())
    );
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 80);
    assert!(pod["metadata"]["annotations"]["checksum/config"].is_string(), "{pod}");
    let volumes = pod["spec"]["volumes"].to_string();
    assert!(volumes.contains("\"claimName\":\"shared\"") && volumes.contains("\"my-tokens\""), "{volumes}");
    let config = of_kind("ConfigMap").unwrap()["data"]["coretools.toml"].as_str().unwrap();
    for line in [
        "hosts = [\"agents.example\"]",
        "origins = [\"https://agents.example\"]",
        "behind_proxy = [\"10.1.0.0/16\",\"10.2.0.0/16\"]",
        "drain_ms = 60000",
    ] {
        assert!(config.lines().any(|found| found == line), "{line} is missing in {config}");
    }
    for wrong in ["replicas=0", "replica=2", "host=https://agents.example", "gateway.addresses={}"] {
        let Some(output) = check_chart(&["--set", wrong]) else { return };
        assert!(!output.status.success(), "{wrong}");
    }
}

#[test]
fn the_chart_has_the_version_of_the_workspace() {
    let chart = fs::read_to_string(checkout("packaging/helm/coretools/Chart.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        assert!(chart.lines().any(|found| found == line), "{line} is missing in {chart}");
    }
}
