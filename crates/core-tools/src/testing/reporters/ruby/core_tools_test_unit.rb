# Loaded by each Ruby process of a test command (`RUBYOPT`). It adds our reporter to the runs of test-unit, which finds no
# plug-ins by itself.
module CoreToolsTestUnit
  STATUSES = { "Error" => "errored", "Failure" => "failed", "Pending" => "skipped", "Omission" => "skipped" }.freeze
  # The gravest first.
  ORDER = %w[errored failed skipped].freeze

  # Listens to one run: the mediator tells it of tests and of what goes wrong in them.
  class Listener
    def initialize
      @faults = Hash.new { |faults, name| faults[name] = [] }
    end

    def listen_to(mediator)
      mediator.add_listener(Test::Unit::TestCase::STARTED_OBJECT) do |test|
        CoreToolsEvents.write(event: "start", name: name_of(test))
      end
      mediator.add_listener(Test::Unit::TestResult::FAULT) do |fault|
        @faults[fault.test_name] << fault if STATUSES.key?(fault.label)
      end
      mediator.add_listener(Test::Unit::TestCase::FINISHED_OBJECT) do |test|
        file, line = test.method(test.method_name).source_location
        report(name_of(test), @faults.delete(test.name) || [], file, line, test.elapsed_time)
      end
    end

    # Tells what is left: what went wrong outside of a test, as in the set-up of a class.
    def finish
      @faults.each { |name, faults| report(name, faults, nil, nil, nil) }
      CoreToolsEvents.write(event: "end")
    end

    private

    def name_of(test)
      "#{test.class}##{test.respond_to?(:local_name) ? test.local_name : test.method_name}"
    end

    def report(name, faults, file, line, seconds)
      status = ORDER.find { |one| faults.any? { |fault| STATUSES[fault.label] == one } }
      fault = faults.find { |one| STATUSES[one.label] == status }
      frames = (fault&.location).to_a.reject { |at| at.include?(CoreToolsEvents::FOLDER) }
      own = frames.find { |at| file.nil? || at.start_with?(file) }
      file ||= own && own[/\A(.+?):\d+/, 1]
      error = fault && [fault.message, *frames.first(20)].join("\n")
      CoreToolsEvents.write(event: "test", name: name, status: status || "passed", error: error, file: file,
                            line: (own && own[/:(\d+)/, 1])&.to_i || line, duration_ms: seconds && (seconds * 1000).round(3))
    end
  end

  def run
    # A run within a run is a test's own.
    return super if CoreToolsTestUnit.is_running
    begin
      CoreToolsTestUnit.is_running = true
      CoreToolsEvents.leave
      CoreToolsEvents.begin("test-unit", "test-unit")
      listener = Listener.new
      listener.listen_to(self)
      result = super
      listener.finish
      result
    ensure
      CoreToolsTestUnit.is_running = false
    end
  end

  class << self
    attr_accessor :is_running
  end

  # The class is there at the end of its definition, whatever loads it.
  NAME = Module.instance_method(:name)
  trace = TracePoint.new(:end) do |point|
    if NAME.bind(point.self).call == "Test::Unit::UI::TestRunnerMediator"
      trace.disable
      require_relative "core_tools_events"
      point.self.prepend(CoreToolsTestUnit)
    end
  end
  trace.enable
end

at_exit do
  code = $!.is_a?(SystemExit) ? $!.status : 1 if $! && !$!.is_a?(SignalException)
  if code.to_i != 0 && $PROGRAM_NAME.end_with?(".rb") && !$PROGRAM_NAME.include?("/gems/")
    require_relative "core_tools_events"
    CoreToolsEvents.failed($PROGRAM_NAME, code) unless CoreToolsEvents.has_begun
  end
end
