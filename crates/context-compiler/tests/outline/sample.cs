// Licence.
using System;
using System.Collections.Generic;

namespace Jobs
{
    /// <summary>A job.</summary>
    [Serializable]
    public abstract class Job<T> : IRunner where T : class
    {
        public const int Limit = 1024;
        private readonly List<string> names = new List<string> { "one", "two", "three", "four", "five", "six", "seven" };

        public string Name { get; private set; }

        public int Size
        {
            get { return Name.Length; }
            set { throw new NotSupportedException(); }
        }

        public bool Done => names.Count == 0;

        public event EventHandler Ended;

        public Job(string name) : base(name)
        {
            Name = name;
        }

        // Not documentation.
        public override async Task<T> RunAsync(CancellationToken token = default)
        {
            await Task.Delay(1, token);
            return null;
        }

        protected abstract void Stop();

        public static bool operator ==(Job<T> a, Job<T> b) => Equals(a, b);
    }

    public interface IRunner
    {
        void Run();
    }

    public enum State { Waiting, Done }

    public record Point(int X, int Y);

    public delegate void Handler(object sender);
}
