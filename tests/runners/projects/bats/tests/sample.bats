@test "passes" {
  echo "on standard output"
}

@test "fails" {
  echo "on standard output"
  echo "on standard error" >&2
  [ 1 -eq 2 ]
}

@test "is skipped" {
  skip "not today"
}

@test "überprüft 名前 # 1" {
  true
}
