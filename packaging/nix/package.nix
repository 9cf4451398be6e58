# mcp-stdio and mcp-http, built from this checkout.
{ lib, rustPlatform, installShellFiles, stdenv }:

let
  root = ../..;
  manifest = builtins.fromTOML (builtins.readFile (root + "/Cargo.toml"));
in
rustPlatform.buildRustPackage {
  pname = "coretools";
  version = manifest.workspace.package.version;
  src = lib.fileset.toSource {
    inherit root;
    fileset = lib.fileset.unions [
      (root + "/Cargo.toml")
      (root + "/Cargo.lock")
      (root + "/crates")
      (root + "/tests")
      (root + "/benchmarks")
    ];
  };
  cargoLock.lockFile = root + "/Cargo.lock";
  buildType = "dist"; # the profile that releases are built with
  cargoBuildFlags = [ "--package" "coretools-mcp" "--package" "mcp-http" "--bins" ];
  # The tests start servers, browsers and databases.
  doCheck = false;
  nativeBuildInputs = [ installShellFiles ];
  postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    for program in mcp-stdio mcp-http; do
      $out/bin/$program man --out man
      installShellCompletion --cmd $program \
        --bash <($out/bin/$program completions bash) \
        --zsh <($out/bin/$program completions zsh) \
        --fish <($out/bin/$program completions fish)
    done
    installManPage man/*.1
  '';
  meta = {
    description = "Tools for coding agents over the Model Context Protocol";
    license = with lib.licenses; [ asl20 mit ];
    mainProgram = "mcp-stdio";
    platforms = lib.platforms.unix;
  };
}
