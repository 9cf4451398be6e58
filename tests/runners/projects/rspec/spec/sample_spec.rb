RSpec.describe "a suite" do
  it("passes") { puts "on standard output" }
  it "fails" do
    warn "on standard error"
    expect(1 + 1).to eq(3)
  end
  it("raises") { raise "boom" }
  it("is skipped", skip: "not today") {}
  it "is pending" do
    pending "later"
    expect(1).to eq(2)
  end
  it("überprüft 名前") {}
  [1, 2].each { |value| it("value #{value}") { expect(value).to eq(1) } }
end
