import React from "react";

type Props = { name: string; onEnd?: () => void };

/** A job, drawn. */
export const Job: React.FC<Props> = ({ name, onEnd }) => {
  const [open, setOpen] = React.useState(false);
  return <div onClick={() => setOpen(!open)}>{name}</div>;
};

export default function List({ jobs }: { jobs: Props[] }) {
  return <ul>{jobs.map((job) => <Job key={job.name} {...job} />)}</ul>;
}
