# A formatter for ExUnit. It writes each event when it happens, as one JSON object a line.
defmodule CoreToolsFormatter do
  use GenServer

  def init(_options) do
    {:ok, File.open!(System.fetch_env!("CORE_TOOLS_EVENTS"), [:append, :utf8])}
  end

  def handle_cast({:test_started, test}, to) do
    write(to, event: "start", name: name(test))
    {:noreply, to}
  end

  def handle_cast({:test_finished, test}, to) do
    {status, error} = outcome(test)

    write(to,
      event: "test",
      name: name(test),
      status: status,
      error: error,
      duration_ms: test.time / 1000,
      file: test.tags[:file],
      line: line(test) || test.tags[:line]
    )

    {:noreply, to}
  end

  # The set-up of a whole module failed.
  def handle_cast({:module_finished, %{state: {:failed, failures}} = module}, to) do
    write(to, event: "problem", kind: "runner_failed", message: "#{inspect(module.name)}: #{text(failures, module)}")
    {:noreply, to}
  end

  def handle_cast({:suite_finished, _}, to) do
    write(to, event: "end")
    {:noreply, to}
  end

  def handle_cast(_, to), do: {:noreply, to}

  defp name(test), do: "#{inspect(test.module)} #{test.name}"

  defp outcome(%{state: nil}), do: {"passed", nil}
  defp outcome(%{state: {:failed, failures}} = test) do
    timeout = Enum.any?(failures, fn {_, reason, _} -> match?(%{__struct__: ExUnit.TimeoutError}, reason) end)
    {if(timeout, do: "timed_out", else: "failed"), text(failures, test)}
  end
  defp outcome(%{state: {:invalid, _}}), do: {"errored", "the set-up of its module failed"}
  defp outcome(%{state: {_, reason}}), do: {"skipped", to_string(reason)}

  defp text(failures, _) do
    Enum.map_join(failures, "\n", fn {kind, reason, stack} ->
      message = if is_exception(reason), do: Exception.message(reason), else: Exception.format_banner(kind, reason, stack)
      message <> "\n" <> Exception.format_stacktrace(stack)
    end)
  end

  defp line(%{state: {:failed, failures}, tags: %{file: file}}) do
    Enum.find_value(failures, fn {_, _, stack} ->
      Enum.find_value(stack, fn
        {_, _, _, place} -> if Path.expand(to_string(place[:file])) == file, do: place[:line]
        _ -> nil
      end)
    end)
  end
  defp line(_), do: nil

  defp write(to, event) do
    pairs = for {key, value} <- event, value != nil, do: ~s("#{key}":#{json(value)})
    IO.write(to, "{" <> Enum.join(pairs, ",") <> "}\n")
  end

  defp json(value) when is_number(value), do: to_string(value)
  defp json(value) do
    text = value |> to_string() |> String.to_charlist() |> Enum.map(fn
      ?" -> "\\\""
      ?\\ -> "\\\\"
      c when c < 32 -> "\\u" <> String.pad_leading(Integer.to_string(c, 16), 4, "0")
      c -> <<c::utf8>>
    end)
    ~s("#{text}")
  end
end
