//! The kinds that are built in, one file each in the folder `presets`.

/// Name and text of each.
pub(crate) const PRESETS: &[(&str, &str)] = &[
    ("ssh", include_str!("presets/ssh.toml")),
    ("docker", include_str!("presets/docker.toml")),
    ("docker-run", include_str!("presets/docker-run.toml")),
    ("podman", include_str!("presets/podman.toml")),
    ("podman-run", include_str!("presets/podman-run.toml")),
    ("devcontainer", include_str!("presets/devcontainer.toml")),
    ("kubernetes", include_str!("presets/kubernetes.toml")),
    ("kubernetes-run", include_str!("presets/kubernetes-run.toml")),
    ("agent-sandbox", include_str!("presets/agent-sandbox.toml")),
    ("slurm", include_str!("presets/slurm.toml")),
    ("sudo", include_str!("presets/sudo.toml")),
    ("nsenter", include_str!("presets/nsenter.toml")),
    ("sh", include_str!("presets/sh.toml")),
];
