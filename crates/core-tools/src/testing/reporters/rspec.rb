# A formatter for RSpec 3. It writes each event when it happens, as one JSON object a line.
require "json"

class CoreToolsFormatter
  RSpec::Core::Formatters.register self, :start, :example_started, :example_passed, :example_failed,
                                   :example_pending, :message, :dump_summary, :close

  def initialize(output)
    @output = output
    @messages = []
  end

  def start(notification)
    write(event: "plan", tests: notification.count)
    tell_left_out(notification.count)
  end

  def example_started(notification)
    write(event: "start", name: notification.example.full_description)
  end

  def example_passed(notification)
    # Every example of a dry run passes, and none is executed.
    return report(notification.example, "skipped", "a dry run executes no example") if RSpec.configuration.dry_run?
    report(notification.example, "passed")
  end

  def example_pending(notification)
    report(notification.example, "skipped", notification.example.execution_result.pending_message)
  end

  def example_failed(notification)
    error = notification.example.execution_result.exception
    frame = Array(error&.backtrace).find { |at| at.include?(notification.example.metadata[:absolute_file_path]) }
    text = ["#{error.class}: #{error.message}", *Array(error&.backtrace).first(20)].join("\n")
    report(notification.example, "failed", text, frame && frame[/:(\d+)/, 1].to_i)
  end

  # RSpec reports an error outside of the examples as a message.
  def message(notification)
    @messages << notification.message
  end

  def dump_summary(summary)
    outside = summary.respond_to?(:errors_outside_of_examples_count) ? summary.errors_outside_of_examples_count : 0
    return unless outside > 0
    text = @messages.reject { |message| message.start_with?("Run options") }.join("\n").strip
    write(event: "problem", kind: "collection_error", message: text)
  end

  def close(_)
    write(event: "end")
    @output.close unless @output.closed?
  end

  private

  # Tells of the examples that a filter leaves out, such as that of `focus`.
  def tell_left_out(count)
    all = RSpec.world.all_examples.size
    return unless count < all
    write(event: "deselected", tests: all - count)
    return unless RSpec.configuration.inclusion_filter.rules[:focus]
    write(event: "note", message: "only #{count} of #{all} examples ran because of `focus`")
  end

  def report(example, status, error = nil, line = nil)
    result = example.execution_result
    write(event: "test", name: example.full_description, status: status, error: error,
          duration_ms: result.run_time && (result.run_time * 1000).round(3),
          file: example.metadata[:absolute_file_path], line: line || example.metadata[:line_number])
  end

  # Cuts text that is far longer than what a report shows of it.
  def tidy(text)
    longest = 64 * 1024
    text = text.dup.force_encoding("UTF-8").scrub
    return text if text.length <= longest
    "#{text[0, longest / 2]}[... #{text.length - longest} characters left out ...]#{text[-longest / 2, longest / 2]}"
  end

  def write(event)
    # The output of a program may be any bytes, and JSON takes only UTF-8.
    event = event.transform_values { |value| value.is_a?(String) ? tidy(value) : value }
    @output.puts(JSON.generate(event))
    @output.flush
  end
end
