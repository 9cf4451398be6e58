# Writes events of this process to the file of events of the run, each as a line of JSON.
require "json"

module CoreToolsEvents
  FOLDER = File.expand_path("..", __dir__)
  RUN = "#{Process.pid}-#{(Process.clock_gettime(Process::CLOCK_REALTIME) * 1_000_000).to_i.to_s(36)}"
  OWNER = Process.pid

  def self.write(event)
    # What a test forks must not write its parent's report.
    return if Process.pid != OWNER
    @file ||= File.open(File.join(FOLDER, "events"), "a").tap { |file| file.sync = true }
    event = event.transform_values { |value| value.is_a?(String) ? tidy(value) : value }
    @file.write(JSON.generate(event.merge(run: RUN)) + "\n")
  end

  # Cuts text that is far longer than what a report shows of it. JSON takes only UTF-8.
  def self.tidy(text)
    longest = 64 * 1024
    text = text.dup.force_encoding("UTF-8").scrub
    return text if text.length <= longest
    "#{text[0, longest / 2]}[... #{text.length - longest} characters left out ...]#{text[-longest / 2, longest / 2]}"
  end

  class << self
    # True once a runner in the process reports its tests.
    attr_reader :has_begun
  end

  # Tells of a script that reports no test, and that failed: it may be a test.
  def self.failed(script, code)
    write(event: "process", program: "ruby", arguments: [script, *ARGV], folder: Dir.pwd, parent: Process.ppid)
    write(event: "exit", code: code)
  end

  # Tells of the process, and that a runner in it reports its tests.
  def self.begin(program, runner)
    @has_begun = true
    write(event: "process", program: program, arguments: ARGV.dup, folder: Dir.pwd)
    write(event: "runner", runner: runner)
  end

  # Tells how the process ends. Minitest chooses its exit code later than any block of ours is run.
  def self.watch_exit
    at_exit do
      code = $!.is_a?(SystemExit) ? $!.status : ($! ? 1 : 0)
      write(event: "exit", code: code)
    end
  end

  # Takes what loads our reporters out of the environment: what the tests start has none.
  def self.leave
    JSON.parse(File.read(File.join(FOLDER, "environment.json"))).each do |name, word, separator|
      words = "#{separator}#{ENV.fetch(name, "")}#{separator}"
      next unless words.include?("#{separator}#{word}#{separator}")
      rest = words.sub("#{separator}#{word}#{separator}") { separator }[1...-1].to_s
      ENV[name] = rest.empty? ? nil : rest
    end
  rescue SystemCallError
    # The folder is gone: nothing can be loaded from it.
  end

  # The output that a formatter is given.
  class Output
    def puts(line) = CoreToolsEvents.write(JSON.parse(line, symbolize_names: true))
    def flush = self
    def close = nil
    def closed? = false
  end
end
