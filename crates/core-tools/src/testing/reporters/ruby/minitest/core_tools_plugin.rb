# A plug-in that minitest finds in `RUBYLIB`: a reporter beside those of the project.
require_relative "../core_tools_events"

module Minitest
  class CoreToolsReporter < AbstractReporter
    def initialize
      super
      @passed = true
    end

    def start
      CoreToolsEvents.leave
      CoreToolsEvents.begin("minitest", "minitest")
    end

    def prerecord(test_class, name)
      CoreToolsEvents.write(event: "start", name: "#{test_class}##{name}")
    end

    def record(result)
      status = result.skipped? ? "skipped" : result.error? ? "errored" : result.passed? ? "passed" : "failed"
      @passed &&= result.passed? || result.skipped?
      file, line = result.respond_to?(:source_location) ? result.source_location : nil
      failure = result.failures.first
      at = failure&.location.to_s[/:(\d+)\z/, 1] if file && failure&.location.to_s.start_with?(file)
      class_name = result.respond_to?(:klass) ? result.klass : result.class.name
      CoreToolsEvents.write(event: "test", name: "#{class_name}##{result.name}", status: status,
                            duration_ms: (result.time * 1000).round(3), file: file, line: at&.to_i || line,
                            error: result.failures.empty? ? nil : result.failures.map(&:message).join("\n"))
    end

    def report
      CoreToolsEvents.write(event: "end")
    end

    def passed?
      @passed
    end
  end

  def self.plugin_core_tools_init(_options)
    reporter << CoreToolsReporter.new
  end
end
