// The openai package works unmodified: chat, streams, usage, stop, seed, abort,
// and each refusal as the exception its users expect.
//
//   node openai_client.mjs URL [API_KEY]
//
// Prints a line a check and exits 1 when one fails. With API_KEY the server
// must ask for it.

import assert from "node:assert/strict";
import OpenAI from "openai";

const [url, key] = process.argv.slice(2);
if (!url) {
  console.error("usage: node openai_client.mjs URL [API_KEY]");
  process.exit(2);
}

const settings = {baseURL: `${url}/v1`, maxRetries: 0, timeout: 120_000};
const client = new OpenAI({...settings, apiKey: key ?? "none"});
const PROMPT = "Write a long story about a river, a boat and an old man.";

let model;

function request(fields = {}) {
  return {
    model,
    messages: [{role: "user", content: PROMPT}],
    max_tokens: 24,
    temperature: 0,
    ...fields,
  };
}

async function text(fields) {
  const answer = await client.chat.completions.create(request(fields));
  return answer.choices[0].message.content;
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("an answer where a refusal was due");
}

const checks = {
  async "models are listed and retrieved"() {
    const list = await client.models.list();
    model = list.data[0].id;
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async "a chat completion has text and usage"() {
    const answer = await client.chat.completions.create(request());
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.choices[0].message.role, "assistant");
    const {prompt_tokens, completion_tokens, total_tokens} = answer.usage;
    assert.ok(completion_tokens >= 1 && completion_tokens <= 24);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
  },

  async "a stream joins to the plain answer and ends with usage"() {
    const plain = await text();
    const stream = await client.chat.completions.create(
      request({stream: true, stream_options: {include_usage: true}}),
    );
    let joined = "";
    let usage;
    const finishes = [];
    for await (const chunk of stream) {
      joined += chunk.choices[0]?.delta.content ?? "";
      if (chunk.choices[0]?.finish_reason) {
        finishes.push(chunk.choices[0].finish_reason);
      }
      usage = chunk.usage ?? usage;
    }
    assert.equal(joined, plain);
    assert.equal(finishes.length, 1);
    assert.ok(usage.completion_tokens >= 1);
  },

  async "text completions stream as they answer"() {
    const fields = {model, prompt: "The river", max_tokens: 12, temperature: 0};
    const plain = await client.completions.create(fields);
    const stream = await client.completions.create({...fields, stream: true});
    let joined = "";
    for await (const chunk of stream) {
      joined += chunk.choices[0]?.text ?? "";
    }
    assert.equal(joined, plain.choices[0].text);
  },

  async "a stop string ends the answer in front of it"() {
    const plain = await text();
    const stop = plain.slice(8, 13);
    const answer = await client.chat.completions.create(request({stop: [stop]}));
    const cut = plain.slice(0, plain.indexOf(stop));
    assert.equal(answer.choices[0].message.content, cut);
    assert.equal(answer.choices[0].finish_reason, "stop");
  },

  async "a seed repeats, alone and beside others"() {
    const seeded = {temperature: 1, seed: 7};
    const alone = await text(seeded);
    const beside = await Promise.all([
      text(seeded),
      text({temperature: 1, seed: 8}),
      text({temperature: 1, seed: 9}),
    ]);
    assert.equal(beside[0], alone);
  },

  async "log-probabilities come one a token"() {
    const answer = await client.chat.completions.create(
      request({logprobs: true, top_logprobs: 2}),
    );
    const {content} = answer.choices[0].logprobs;
    assert.equal(content.length, answer.usage.completion_tokens);
    assert.ok(content.every((entry) => entry.top_logprobs.length === 2));
  },

  async "an aborted stream harms nobody"() {
    const plain = await text();
    for (let round = 0; round < 3; ++round) {
      const stream = await client.chat.completions.create(
        request({max_tokens: 600, stream: true}),
      );
      for await (const _ of stream) {
        stream.controller.abort();
        break;
      }
    }
    const aborted = new AbortController();
    const pending = client.chat.completions.create(request({max_tokens: 600}), {
      signal: aborted.signal,
    });
    setTimeout(() => aborted.abort(), 50);
    assert.ok((await refusal(pending)) instanceof OpenAI.APIUserAbortError);
    assert.equal(await text(), plain);
  },

  async "a wrong model is a NotFoundError"() {
    const error = await refusal(
      client.chat.completions.create(request({model: "no-such-model"})),
    );
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
  },

  async "a bad value is a BadRequestError that names the field"() {
    const error = await refusal(
      client.chat.completions.create(request({temperature: -1})),
    );
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
  },

  async "too long a prompt is a BadRequestError, streamed too"() {
    for (const stream of [false, true]) {
      const error = await refusal(
        client.chat.completions.create(
          request({
            messages: [{role: "user", content: "word ".repeat(200_000)}],
            stream,
          }),
        ),
      );
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.code, "context_length_exceeded");
    }
  },

  async "a wrong key is an AuthenticationError"() {
    if (key === undefined) {
      return "no API key given";
    }
    const wrong = new OpenAI({...settings, apiKey: "wrong"});
    const error = await refusal(wrong.chat.completions.create(request()));
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, "invalid_api_key");
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    const skipped = await check();
    console.log(skipped ? `skip ${name}: ${skipped}` : `ok   ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}
process.exit(failed ? 1 : 0);
