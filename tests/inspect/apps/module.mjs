let visits = 3;
const rooms = new Map([['lobby', { guests: ['ada'] }]]);
export const visit = () => { visits++; return rooms; };
setInterval(() => { if (visits < 0) debugger; }, 5);
setInterval(() => { debugger; visits += 0; }, 1);
console.log('ready');
