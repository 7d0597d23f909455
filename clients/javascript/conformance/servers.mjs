// Small servers of the conformance program, and the dimensions of images.
import { createServer } from "node:http";
import { connect, createServer as createSocketServer } from "node:net";

/** Width and height of a JPEG or PNG file. */
export function dimensions(content) {
  if (content.readUInt32BE(0) === 0x89504e47) return [content.readUInt32BE(16), content.readUInt32BE(20)];
  for (let place = 2; place < content.length; place += 2 + content.readUInt16BE(place + 2))
    if ([0xc0, 0xc1, 0xc2].includes(content[place + 1])) return [content.readUInt16BE(place + 7), content.readUInt16BE(place + 5)];
  throw new Error("neither JPEG nor PNG");
}

const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`)));

/** A server that answers requests in turn with [status, headers, value], or with a closed connection for null. */
export async function flakyGateway(answers) {
  const [bodies, times] = [[], []];
  const server = createServer((request, response) => {
    times.push(performance.now());
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      bodies.push(Buffer.concat(parts).toString());
      const answer = answers[bodies.length - 1];
      if (!answer) return request.socket.destroy();
      const [status, headers, value] = answer;
      response.writeHead(status, headers).end(JSON.stringify(value));
    });
  });
  const url = await listen(server);
  return { url, bodies, times, close: () => (server.closeAllConnections?.(), server.close()) };
}

/**
 * A server that answers one request on each connection with bytes, whatever they are: `answer` returns for its head the bytes and the end, which is
 * `close`, `reset`, or `silence` until the client closes the connection.
 */
export async function rawGateway(answer) {
  const server = createSocketServer((client) => {
    let head = "";
    client.on("error", () => {});
    client.on("data", (part) => {
      head += part;
      if (!head.endsWith("\r\n\r\n")) return;
      const [text, end] = answer(head);
      client.write(text, () => {
        if (end === "reset") client.resetAndDestroy();
        else if (end === "close") client.end();
      });
    });
  });
  return { url: await listen(server), close: () => server.close() };
}

/** A proxy that cuts its first connection in the middle of the second event. `lastIDs` are the headers Last-Event-ID of the connections. */
export async function cuttingProxy(target) {
  const { hostname, port } = new URL(target);
  const lastIDs = [];
  const server = createSocketServer((client) => {
    const gateway = connect(Number(port), hostname);
    const isFirst = lastIDs.length === 0;
    let [head, seen] = ["", ""];
    lastIDs.push("");
    const index = lastIDs.length - 1;
    client.on("data", (part) => {
      head += part;
      lastIDs[index] = /\r\nlast-event-id: *([^\r]*)/i.exec(head)?.[1] ?? "";
      gateway.write(part);
    });
    gateway.on("data", (part) => {
      const before = seen.length;
      seen += part.toString("latin1");
      const second = seen.indexOf("\ndata: ", seen.indexOf("\ndata: ") + 1);
      if (isFirst && second > seen.indexOf("\ndata: ")) {
        client.end(part.subarray(0, Math.max(0, second + 40 - before)), () => client.destroy());
        return gateway.destroy();
      }
      client.write(part);
    });
    for (const socket of [client, gateway]) socket.on("error", () => {});
    client.on("close", () => gateway.destroy());
    gateway.on("close", () => client.end());
  });
  const url = await listen(server);
  return { url, lastIDs, close: () => server.close() };
}
