// Prints the cursor and the job of each event of a result until it is killed: follow.mjs MODULE GATEWAY.
const [module, gateway] = process.argv.slice(2);
const { Client } = await import(module);
const halcyon = new Client(gateway);
const after = await halcyon.cursor();
console.log("begun");
for await (const { event, gap, cursor } of halcyon.events({ types: ["ready"], after })) {
  console.log(event ? `${cursor} ${event.data.job.id}` : `gap: ${gap}`);
}
