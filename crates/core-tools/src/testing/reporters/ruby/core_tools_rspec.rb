# Loaded by each RSpec of a test command (`SPEC_OPTS`). It adds our formatter to those of the project.
require "json"
require_relative "../rspec"
require_relative "core_tools_events"

RSpec.configure do |config|
  CoreToolsEvents.leave
  CoreToolsEvents.begin("rspec", "rspec")
  CoreToolsEvents.watch_exit
  formatter = CoreToolsFormatter.new(CoreToolsEvents::Output.new)
  events = %i[start example_started example_passed example_failed example_pending message dump_summary close]
  # Not by `add_formatter`: with it the project would lose the formatter that it has by default.
  config.send(:formatter_loader).reporter.register_listener(formatter, *events)
end
