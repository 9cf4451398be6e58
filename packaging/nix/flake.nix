# nix run 'github:OWNER/REPOSITORY?dir=packaging/nix' -- doctor
{
  description = "Tools for coding agents over the Model Context Protocol";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" "x86_64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: { default = pkgs.callPackage ./package.nix { }; });
    };
}
