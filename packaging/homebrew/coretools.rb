# Filled in by `packaging/package.py homebrew` for a release.
class Coretools < Formula
  desc "Tools for coding agents over the Model Context Protocol"
  homepage "https://github.com/OWNER/REPOSITORY"
  version "VERSION"
  license any_of: ["Apache-2.0", "MIT"]

  on_macos do
    on_arm do
      url "https://github.com/OWNER/REPOSITORY/releases/download/vVERSION/coretools-VERSION-aarch64-apple-darwin.tar.gz"
      sha256 "SHA256 aarch64-apple-darwin"
    end
    on_intel do
      url "https://github.com/OWNER/REPOSITORY/releases/download/vVERSION/coretools-VERSION-x86_64-apple-darwin.tar.gz"
      sha256 "SHA256 x86_64-apple-darwin"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/OWNER/REPOSITORY/releases/download/vVERSION/coretools-VERSION-aarch64-unknown-linux-musl.tar.gz"
      sha256 "SHA256 aarch64-unknown-linux-musl"
    end
    on_intel do
      url "https://github.com/OWNER/REPOSITORY/releases/download/vVERSION/coretools-VERSION-x86_64-unknown-linux-musl.tar.gz"
      sha256 "SHA256 x86_64-unknown-linux-musl"
    end
  end

  def install
    %w[mcp-stdio mcp-http].each do |program|
      bin.install program
      bash_completion.install "completions/bash/#{program}.bash" => program
      zsh_completion.install "completions/zsh/_#{program}"
      fish_completion.install "completions/fish/#{program}.fish"
    end
    man1.install Dir["man/man1/*.1"]
  end

  def caveats
    "To connect a client: mcp-stdio print-config claude --write"
  end

  test do
    (testpath/"a.txt").write "hello\n"
    assert_match "hello", shell_output("#{bin}/mcp-stdio call read_file '{\"path\": \"a.txt\"}'")
  end
end
